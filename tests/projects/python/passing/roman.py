VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def value(text):
    """Returns the value of a Roman number."""
    digits = [VALUES[letter] for letter in text]
    pairs = zip(digits, digits[1:] + [0])
    return sum(-one if one < after else one for one, after in pairs)
