"""From a decoded header to a response: routing, dispatch, quotas."""
