"""What can be checked of Dataflow without the service: the image's steps, and the job's request."""
