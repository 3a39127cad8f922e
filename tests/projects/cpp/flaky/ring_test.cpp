#include "ring.hpp"
#include <fstream>
#include <iostream>

int main() {
    if (!std::ifstream("build/ran-before")) {
        std::ofstream("build/ran-before") << "";
        std::cerr << __FILE__ << ":" << __LINE__ << ": error: the cache was cold\n";
        return 1;
    }
    Ring<2> ring;
    ring.push(3);
    return ring.newest() != 3;
}
