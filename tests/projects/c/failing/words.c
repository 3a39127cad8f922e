#include "words.h"

int count_words(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == ' ';
    return count;
}
