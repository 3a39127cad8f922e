//! Edit formats to located hunks to new text, or the reason why not.
