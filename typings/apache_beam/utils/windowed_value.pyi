class WindowedValue:
    value: object
