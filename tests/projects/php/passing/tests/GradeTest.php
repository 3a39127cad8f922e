<?php

use PHPUnit\Framework\TestCase;

final class GradeTest extends TestCase
{
    public function testFiftyPointsAreEnough(): void
    {
        $this->assertSame('passed', Grade::of(50));
    }
}
