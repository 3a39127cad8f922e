(module name: (_) @name) @module
(class name: (_) @name) @class
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(assignment left: (constant) @name) @constant
((call method: (identifier) @_m arguments: (argument_list (simple_symbol) @name)) @property (#any-of? @_m "attr_accessor" "attr_reader" "attr_writer") (#set! in "body_statement"))
((call method: (identifier) @_m arguments: (argument_list . (simple_symbol) @name)) @method (#any-of? @_m "define_method" "alias_method") (#set! in "body_statement"))
((alias name: (_) @name) @method (#set! in "body_statement"))
