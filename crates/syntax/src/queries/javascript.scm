(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(field_definition property: (_) @name) @field
((variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
((variable_declarator name: (identifier) @name) @variable (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
((assignment_expression left: (member_expression property: (_) @name) right: [(arrow_function) (function_expression)]) @function (#set! in "program expression_statement"))
(variable_declarator name: (identifier) @name value: (class)) @class
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
