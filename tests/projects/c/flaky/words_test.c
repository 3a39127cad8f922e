#include <stdio.h>
#include "words.h"

int main(void)
{
    FILE *mark = fopen("build/ran-before", "r");
    if (!mark) {
        fclose(fopen("build/ran-before", "w"));
        printf("%s:%d: error: the cache was cold\n", __FILE__, __LINE__);
        return 1;
    }
    fclose(mark);
    return count_words(" two  words ") != 2;
}
