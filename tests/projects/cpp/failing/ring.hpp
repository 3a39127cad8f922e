#pragma once
#include <array>
#include <cstddef>

// The newest values, up to N of them.
template <std::size_t N> class Ring {
public:
    void push(int value) { values[next++ % N] = value; }
    int newest() const { return values[latest]; }

private:
    std::array<int, N> values{};
    std::size_t next = 0;
};
