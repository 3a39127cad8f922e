//! Screens of scripted sessions, held against `tests/screens`. `UPDATE_SCREENS=1` writes them anew,
//! to be read before they are committed.
