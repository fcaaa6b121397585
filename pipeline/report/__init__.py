"""What people and machines look at afterwards."""
