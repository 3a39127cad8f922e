(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(function_signature name: (_) @name) @function
(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_assignment name: (_) @name) @variant
((property_identifier) @name @variant (#set! in "enum_body"))
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(method_definition name: (_) @name) @method
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(property_signature name: (_) @name) @field
(public_field_definition name: (_) @name) @field
((variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
((variable_declarator name: (identifier) @name) @variable (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
(variable_declarator name: (identifier) @name value: (class)) @class
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
