from apache_beam.utils.windowed_value import WindowedValue

class WindowFn: ...

class GlobalWindows(WindowFn):
    @classmethod
    def windowed_value(cls, value: object) -> WindowedValue: ...
