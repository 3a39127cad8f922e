#include <stdio.h>
#include "words.h"

int main(void)
{
    int count = count_words(" two  words ");
    if (count != 2) {
        printf("%s:%d: error: counted %d words, not 2\n", __FILE__, __LINE__, count);
        return 1;
    }
    return 0;
}
