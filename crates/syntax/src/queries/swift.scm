(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name)) @impl
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration name: (type_identifier) @name) @class
(protocol_declaration name: (_) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @method
(init_declaration name: "init" @name) @constructor
(typealias_declaration name: (type_identifier) @name) @type
(associatedtype_declaration name: (type_identifier) @name) @type
(deinit_declaration "deinit" @name) @method
(subscript_declaration "subscript" @name) @method
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field
(enum_entry name: (simple_identifier) @name) @variant
((property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @field (#set! in "class_body"))
((property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable (#set! in "source_file"))
