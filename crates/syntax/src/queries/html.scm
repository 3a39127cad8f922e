(element [(start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (self_closing_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)))] (#eq? @_id "id")) @element
(element [(start_tag (attribute (attribute_name) @_id (attribute_value) @name)) (self_closing_tag (attribute (attribute_name) @_id (attribute_value) @name))] (#eq? @_id "id")) @element
(script_element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)) (#eq? @_id "id"))) @element
(style_element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name)) (#eq? @_id "id"))) @element
(element (start_tag (tag_name) @_tag) (text) @name (#any-of? @_tag "h1" "h2" "h3" "h4" "h5" "h6" "H1" "H2" "H3" "H4" "H5" "H6" "title")) @heading
