int count_words(const char *text);
