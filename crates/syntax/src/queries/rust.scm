; A capture's name is the kind of symbol; it stands at the node that the pattern begins with. @name is its name, @parent a
; type that it belongs to. (#set! in "a b"): only right in a `b` that is right in an `a`; several may be given.
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(enum_variant name: (_) @name) @variant
(union_item name: (_) @name) @struct
(trait_item name: (_) @name) @trait
(mod_item name: (_) @name) @module
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(macro_definition name: (_) @name) @macro
(field_declaration name: (_) @name) @field
(impl_item type: (type_identifier) @name) @impl
(impl_item type: (primitive_type) @name) @impl
(impl_item type: (generic_type type: (type_identifier) @name)) @impl
(impl_item type: (generic_type type: (scoped_type_identifier name: (_) @name))) @impl
(impl_item type: (scoped_type_identifier name: (_) @name)) @impl
(impl_item type: (reference_type type: (type_identifier) @name)) @impl
(impl_item type: (reference_type type: (generic_type type: (type_identifier) @name))) @impl
(impl_item type: (reference_type type: [(primitive_type) (array_type) (tuple_type) (dynamic_type) (function_type)] @name)) @impl
(impl_item type: [(array_type) (tuple_type) (unit_type) (dynamic_type) (function_type) (pointer_type)] @name) @impl
