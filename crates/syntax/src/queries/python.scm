(function_definition name: (_) @name) @function
(class_definition name: (_) @name) @class
((expression_statement (assignment left: (identifier) @name)) @variable (#set! in "module"))
((expression_statement (assignment left: (identifier) @name)) @field (#set! in "class_definition block"))
(type_alias_statement left: (type (identifier) @name)) @type
