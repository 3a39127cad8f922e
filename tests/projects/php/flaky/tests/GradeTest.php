<?php

use PHPUnit\Framework\TestCase;

final class GradeTest extends TestCase
{
    public function testFiftyPointsAreEnough(): void
    {
        $again = file_exists('.cache/ran-before');
        @mkdir('.cache');
        touch('.cache/ran-before');
        $this->assertTrue($again, 'the cache was cold');
        $this->assertSame('passed', Grade::of(50));
    }
}
