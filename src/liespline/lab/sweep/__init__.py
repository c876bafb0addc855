"""Many runs, each exactly once."""
