"""The documents that change, beside the corpus."""

NOTES = 100


def note(number, word):
    return f"note {number} says {word} today"
