(namespace_declaration name: (_) @name) @module
(class_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(struct_declaration name: (_) @name) @struct
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_member_declaration name: (_) @name) @variant
(delegate_declaration name: (_) @name) @type
(method_declaration name: (_) @name) @method
(local_function_statement name: (_) @name) @function
(constructor_declaration name: (_) @name) @constructor
(property_declaration name: (_) @name) @property
(event_declaration name: (_) @name) @property
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
