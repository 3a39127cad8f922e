#include "ring.hpp"
#include <iostream>

int main() {
    Ring<2> ring;
    for (int value : {1, 2, 3})
        ring.push(value);
    if (ring.newest() != 3) {
        std::cerr << __FILE__ << ":" << __LINE__ << ": error: the newest value is " << ring.newest() << "\n";
        return 1;
    }
    return 0;
}
