(class_definition name: (_) @name) @class
(object_definition name: (_) @name) @class
(trait_definition name: (_) @name) @trait
(enum_definition name: (_) @name) @enum
(simple_enum_case name: (_) @name) @variant
(full_enum_case name: (_) @name) @variant
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(type_definition name: (_) @name) @type
(given_definition name: (_) @name) @constant
(package_object name: (_) @name) @module
((val_declaration name: (identifier) @name) @field (#set! in "template_body"))
((var_declaration name: (identifier) @name) @field (#set! in "template_body"))
((val_definition pattern: (identifier) @name) @field (#set! in "template_body"))
((var_definition pattern: (identifier) @name) @field (#set! in "template_body"))
((val_definition pattern: (identifier) @name) @constant (#set! in "compilation_unit"))
