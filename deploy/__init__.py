"""Programs that run in the images, and programs that build images without an image registry."""
