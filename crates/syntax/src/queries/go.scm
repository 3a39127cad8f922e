(function_declaration name: (_) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [(type_identifier) @parent (generic_type type: (type_identifier) @parent) (pointer_type [(type_identifier) @parent (generic_type type: (type_identifier) @parent)])])) name: (_) @name) @method
(type_spec name: (_) @name type: (struct_type)) @struct
(type_spec name: (_) @name type: (interface_type)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type
(method_elem name: (_) @name) @method
(struct_type (field_declaration_list (field_declaration name: (_) @name) @field))
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))
