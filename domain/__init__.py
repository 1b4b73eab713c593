"""What is true: specifications, states, errors, names and addressing. Pure: no I/O, no SDK, no clock."""
