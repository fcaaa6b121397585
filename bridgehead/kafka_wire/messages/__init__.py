"""One module per API, named after its `ApiKey`: the dataclasses of its request and response."""
