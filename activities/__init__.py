"""What is done: one file per concern, each a class whose clients are injected. No SDK is imported with these modules."""
