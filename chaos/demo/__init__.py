"""`make demo`: the main job, end to end, shown to somebody who has never heard of KIP-590."""
