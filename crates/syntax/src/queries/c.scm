(function_definition declarator: (function_declarator declarator: (identifier) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
((declaration declarator: (function_declarator declarator: (identifier) @name)) @function (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (init_declarator declarator: (identifier) @name)) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
((declaration declarator: (identifier) @name) @variable (#set! in "translation_unit") (#set! in "declaration_list"))
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @function
((declaration declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @function (#set! in "translation_unit") (#set! in "declaration_list"))
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @variant
(field_declaration declarator: (field_identifier) @name) @field
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
