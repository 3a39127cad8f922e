(rule_set (selectors) @name) @rule
(keyframes_statement (keyframes_name) @name) @rule
(media_statement . (_) @name) @module
(supports_statement . (_) @name) @module
(at_rule (at_keyword) . (keyword_query) @name) @module
((declaration (property_name) @name) @variable (#begins? @name "--"))
