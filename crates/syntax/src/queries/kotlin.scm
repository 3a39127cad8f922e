(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name) @class
(companion_object name: (_) @name) @class
(secondary_constructor "constructor" @name) @constructor
(class_parameter ["val" "var"] (identifier) @name) @field
(function_declaration name: (_) @name) @function
(type_alias type: (identifier) @name) @type
(enum_entry (identifier) @name) @variant
((property_declaration (variable_declaration (identifier) @name)) @variable (#set! in "source_file"))
((property_declaration (variable_declaration (identifier) @name)) @field (#set! in "class_body"))
