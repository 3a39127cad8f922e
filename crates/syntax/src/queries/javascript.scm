(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(field_definition property: (_) @name) @field
(program [(lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function) (variable_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function)])
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function)))
(program [(lexical_declaration (variable_declarator name: (identifier) @name) @variable) (variable_declaration (variable_declarator name: (identifier) @name) @variable)])
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(program (expression_statement (assignment_expression left: (member_expression property: (_) @name) right: [(arrow_function) (function_expression)]) @function))
(variable_declarator name: (identifier) @name value: (class)) @class
(object (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method)
