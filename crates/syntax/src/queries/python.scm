(function_definition name: (_) @name) @function
(class_definition name: (_) @name) @class
((expression_statement (assignment left: (identifier) @name)) @variable (#set! in "module") (#set! in "module if_statement block") (#set! in "module if_statement else_clause block") (#set! in "module try_statement block") (#set! in "module try_statement except_clause block"))
((expression_statement (assignment left: (pattern_list (identifier) @name))) @variable (#set! in "module"))
((expression_statement (assignment left: (identifier) @name)) @field (#set! in "class_definition block"))
(type_alias_statement left: (type (identifier) @name)) @type
