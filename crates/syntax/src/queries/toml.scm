(table . (_) @name) @table
(table_array_element . (_) @name) @table
(pair . (_) @name) @key
