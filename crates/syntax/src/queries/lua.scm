(function_declaration name: (identifier) @name) @function
(function_declaration name: (dot_index_expression table: (_) @parent field: (_) @name)) @function
(function_declaration name: (method_index_expression table: (_) @parent method: (_) @name)) @method
(variable_declaration (assignment_statement (variable_list . name: (identifier) @name) (expression_list . value: (function_definition)))) @function
((variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @variable (#set! in "chunk"))
((assignment_statement (variable_list . name: (identifier) @name) (expression_list . value: (function_definition))) @function (#set! in "chunk"))
((assignment_statement (variable_list . name: (identifier) @name)) @variable (#set! in "chunk"))
((assignment_statement (variable_list . name: (dot_index_expression table: (_) @parent field: (_) @name)) (expression_list . value: (function_definition))) @function (#set! in "chunk"))
((assignment_statement (variable_list . name: (dot_index_expression table: (identifier) @parent field: (_) @name))) @field (#set! in "chunk"))
(field name: (identifier) @name value: (function_definition)) @function
(field name: (string content: (_) @name) value: (function_definition)) @function
