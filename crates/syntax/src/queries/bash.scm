(function_definition name: (_) @name) @function
((variable_assignment name: (variable_name) @name) @variable (#set! in "program"))
((declaration_command (variable_assignment name: (variable_name) @name)) @variable (#set! in "program"))
