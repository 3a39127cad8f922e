(element [(start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (self_closing_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)))] (#eq? @_id "id")) @element
(element [(start_tag (attribute (attribute_name) @_id (attribute_value) @name)) (self_closing_tag (attribute (attribute_name) @_id (attribute_value) @name))] (#eq? @_id "id")) @element
(script_element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)) (#eq? @_id "id"))) @element
(style_element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)) (#eq? @_id "id"))) @element
(element (start_tag (tag_name) @_tag) (text) @name (#match? @_tag "^([hH][1-6]|title)$")) @heading
