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
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(public_field_definition name: (_) @name) @field
(variable_declarator name: (identifier) @name value: (class)) @class
((variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration") (#set! in "program ambient_declaration lexical_declaration") (#set! in "program ambient_declaration variable_declaration"))
((variable_declarator name: (identifier) @name) @variable (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration") (#set! in "program ambient_declaration lexical_declaration") (#set! in "program ambient_declaration variable_declaration"))
((assignment_expression left: (member_expression object: [(identifier) (member_expression)] @_whole property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function (#any-of? @_whole "exports" "module.exports"))
((assignment_expression left: (member_expression object: (member_expression object: (_) @parent property: (_) @_prototype) property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @method (#eq? @_prototype "prototype"))
(assignment_expression left: (member_expression object: (this) property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @method
((assignment_expression left: (member_expression object: (identifier) @_module property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function (#eq? @_module "module"))
(assignment_expression left: (member_expression object: [(identifier) (member_expression)] @parent property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: [(property_identifier) (string)] @name value: [(arrow_function) (function_expression) (generator_function)]) @method
