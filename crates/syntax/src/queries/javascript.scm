(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(field_definition property: (_) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(field_definition property: (_) @name) @field
(variable_declarator name: (identifier) @name value: (class)) @class
((variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
((variable_declarator name: (identifier) @name) @variable (#set! in "program lexical_declaration") (#set! in "program variable_declaration") (#set! in "program export_statement lexical_declaration") (#set! in "program export_statement variable_declaration"))
((assignment_expression left: (member_expression object: [(identifier) (member_expression)] @_whole property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function (#any-of? @_whole "exports" "module.exports"))
((assignment_expression left: (member_expression object: (member_expression object: (_) @parent property: (_) @_prototype) property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @method (#eq? @_prototype "prototype"))
(assignment_expression left: (member_expression object: (this) property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @method
((assignment_expression left: (member_expression object: (identifier) @_module property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function (#eq? @_module "module"))
(assignment_expression left: (member_expression object: [(identifier) (member_expression)] @parent property: (_) @name) right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: [(property_identifier) (string)] @name value: [(arrow_function) (function_expression) (generator_function)]) @method
