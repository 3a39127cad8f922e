(rule_set (selectors) @name) @rule
(keyframes_statement (keyframes_name) @name) @rule
(media_statement . (_) @name) @module
