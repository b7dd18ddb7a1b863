RELEASE unit;
