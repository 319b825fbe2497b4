"""How well recall finds what was said: questions with known answers, scores, and their summary."""
