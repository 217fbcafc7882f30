package broker

// olderChangeSpecs are calls without a directory descriptor, which this architecture has not.
func olderChangeSpecs(int32) (spec, bool) { return spec{}, false }
