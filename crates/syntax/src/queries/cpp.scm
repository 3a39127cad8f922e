(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @function
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @function
((declaration declarator: (function_declarator declarator: (identifier) @name)) @function (#set! in "translation_unit") (#set! in "declaration_list") (#set! in "template_declaration"))
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @method
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
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro
