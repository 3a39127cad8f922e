#include "words.h"

int count_words(const char *text)
{
    int count = 0;
    char before = ' ';
    for (; *text; before = *text++)
        count += *text != ' ' && before == ' ';
    return count;
}
