(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(function_signature name: (_) @name) @function
(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_body (enum_assignment name: (_) @name) @variant)
(enum_body name: (property_identifier) @name @variant)
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(method_definition name: (_) @name) @method
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(property_signature name: (_) @name) @field
(public_field_definition name: (_) @name) @field
(program [(lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function) (variable_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function)])
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function)))
(program [(lexical_declaration (variable_declarator name: (identifier) @name) @variable) (variable_declaration (variable_declarator name: (identifier) @name) @variable)])
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(variable_declarator name: (identifier) @name value: (class)) @class
(object (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method)
