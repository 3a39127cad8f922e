(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name) (destructor_name) (template_function)] @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name) (destructor_name) (template_function)] @name))) @function
(function_definition declarator: (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name) (destructor_name) (template_function)] @name))) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name) (destructor_name) (template_function)] @name)))) @function
(function_definition declarator: (operator_cast) @name) @method
(function_definition declarator: (qualified_identifier name: (operator_cast)) @name) @method
((declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)) @function (#set! in "translation_unit") (#set! in "declaration_list") (#set! in "template_declaration") (#set! in "field_declaration_list"))
((declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function (#set! in "translation_unit") (#set! in "declaration_list") (#set! in "template_declaration"))
((declaration declarator: (reference_declarator (function_declarator declarator: (identifier) @name))) @function (#set! in "translation_unit") (#set! in "declaration_list") (#set! in "template_declaration"))
((declaration declarator: (operator_cast) @name) @method (#set! in "field_declaration_list"))
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name) (destructor_name)] @name)) @method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @method
(field_declaration declarator: (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @method
((declaration declarator: (init_declarator declarator: (identifier) @name)) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (identifier) @name) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
(class_specifier name: (_) @name body: (_)) @class
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @variant
(field_declaration declarator: (field_identifier) @name) @field
(namespace_definition name: (_) @name) @module
(alias_declaration name: (_) @name) @type
(concept_definition name: (_) @name) @type
(type_definition declarator: (type_identifier) @name) @type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @type
(type_definition declarator: (array_declarator declarator: (type_identifier) @name)) @type
(type_definition declarator: (function_declarator declarator: (type_identifier) @name)) @type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @type
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro
(field_declaration declarator: (pointer_declarator declarator: (field_identifier) @name)) @field
(field_declaration declarator: (pointer_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))) @field
(field_declaration declarator: (array_declarator declarator: (field_identifier) @name)) @field
(field_declaration declarator: (pointer_declarator declarator: (array_declarator declarator: (field_identifier) @name))) @field
(field_declaration declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name)))) @field
((declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @name))) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (pointer_declarator declarator: (identifier) @name)) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (array_declarator declarator: (identifier) @name)) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (type_identifier) @name))) @type
(type_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (type_identifier) @name)))) @type
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))))) @function
(type_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name))))) @type
(type_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))))) @type
(type_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (type_identifier) @name))) @type
(type_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (type_identifier) @name))) @type
(type_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (type_identifier) @name)))) @type
(type_definition declarator: (array_declarator declarator: (array_declarator declarator: (type_identifier) @name))) @type
