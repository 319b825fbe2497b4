"""What `memoryos demo` is made of: a system of its own, a journal of what was sent, questions and their score."""
