//! Words of code and prose, as they are indexed and searched.
//!
//! A word of letters, digits and underscores gives the lower-case, stemmed parts of its camelCase or snake_case, and
//! itself whole, in lower case and unstemmed, where it has two parts or more.
