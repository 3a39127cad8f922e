//! Who may do what: levels, modes, rules, shell-command analysis, secret shapes.
