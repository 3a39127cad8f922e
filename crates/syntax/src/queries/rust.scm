; A capture's name is the kind of symbol; @name is its name, @parent a type that it belongs to.
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
